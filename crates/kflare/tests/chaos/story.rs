//! The story in which controllers die: everything that the kinds do to an account, step by step. After each step the account
//! must hold exactly what it should.

use std::collections::BTreeSet;

use kflare_api::names::{ADOPTION_POLICY, DELETION_POLICY};
use kflare_testkit::cluster::WaitError;
use serde_json::json;

use crate::harness::Extent;
use crate::harness::tenant::{Kind, Tenant};

const ADOPT: (&str, &str) = (ADOPTION_POLICY, "adopt");
const RETAIN: (&str, &str) = (DELETION_POLICY, "retain");

/// What the account should hold, see [`Tenant::account`].
struct Account<'a> {
    tenant: &'a Tenant<'a>,
    lines: BTreeSet<String>,
}

impl Account<'_> {
    /// After this step it holds `new` as well and `old` no longer.
    fn becomes(&mut self, step: &str, old: &[&str], new: &[&str]) {
        for line in old {
            assert!(self.lines.remove(*line), "{line} was never there");
        }
        self.lines.extend(new.iter().map(|&line| line.to_owned()));
        assert_eq!(
            self.tenant.account(),
            self.lines,
            "the account, as it is and as it should be: {step}"
        );
    }
}

/// Plays the story of one tenant.
pub async fn play(tenant: &Tenant<'_>, extent: Extent) -> Result<(), WaitError> {
    // What others have in the account from the start.
    let bystander = tenant.foreign(&json!({ "type": "TXT", "name": "bystander", "content": "by hand", "ttl": 600 }));
    tenant.foreign(&json!({ "type": "A", "name": "old", "content": "192.0.2.9", "ttl": 300, "comment": "by hand" }));
    let mut account = Account {
        tenant,
        lines: BTreeSet::new(),
    };
    let bystanders_line = r#"home TXT bystander "by hand" 600"#;
    account.becomes(
        "at the start",
        &[],
        &["home", bystanders_line, "home A old 192.0.2.9 300"],
    );

    tenant.connect().await;
    tenant.settled(Kind::Account, tenant.home()).await?;
    tenant.zone("home", &[ADOPT]).await;
    tenant.settled(Kind::Zone, "home").await?;
    account.becomes("a zone is adopted", &[], &[]);

    let www = |content: &str| json!({ "name": "www", "type": "A", "content": content });
    tenant.record("www", "home", &[], www("192.0.2.1")).await;
    tenant.settled(Kind::Record, "www").await?;
    account.becomes("a record is created", &[], &["home A www 192.0.2.1 1"]);

    let old = json!({ "name": "old", "type": "A", "content": "192.0.2.9", "ttl": 120 });
    tenant.record("old", "home", &[ADOPT], old).await;
    tenant.settled(Kind::Record, "old").await?;
    account.becomes(
        "a record is adopted",
        &["home A old 192.0.2.9 300"],
        &["home A old 192.0.2.9 120"],
    );

    tenant
        .change(Kind::Record, "www", json!({ "content": "192.0.2.2" }))
        .await;
    tenant.settled(Kind::Record, "www").await?;
    account.becomes(
        "a record is changed",
        &["home A www 192.0.2.1 1"],
        &["home A www 192.0.2.2 1"],
    );

    // Names cannot be changed: another name is another resource.
    tenant.delete(Kind::Record, "www").await;
    tenant.gone(Kind::Record, "www").await?;
    account.becomes("a record is deleted", &["home A www 192.0.2.2 1"], &[]);
    let web = json!({ "name": "web", "type": "A", "content": "192.0.2.2" });
    tenant.record("web", "home", &[], web.clone()).await;
    tenant.settled(Kind::Record, "web").await?;
    account.becomes("it is there under another name", &[], &["home A web 192.0.2.2 1"]);

    let mut leavers = Leavers {
        records: vec!["site", "old"],
        zones: vec!["home"],
        lines: vec!["home A web 192.0.2.2 1"],
    };
    if extent == Extent::Full {
        more(tenant, &mut account, &mut leavers).await?;
    }

    // The same record under another resource: the second waits until the first has gone.
    tenant.record("site", "home", &[], web).await;
    tenant.waits(Kind::Record, "site", "AlreadyClaimed").await?;
    tenant.delete(Kind::Record, "web").await;
    tenant.gone(Kind::Record, "web").await?;
    tenant.settled(Kind::Record, "site").await?;
    account.becomes("another resource takes over", &[], &[]);

    // Everything goes at once; what is needed longest waits by itself.
    let Leavers { records, zones, lines } = leavers;
    tenant.delete_secret().await;
    tenant.delete(Kind::Account, tenant.home()).await;
    for zone in &zones {
        tenant.delete(Kind::Zone, zone).await;
    }
    for record in &records {
        tenant.delete(Kind::Record, record).await;
    }
    for record in records {
        tenant.gone(Kind::Record, record).await?;
    }
    for zone in zones {
        tenant.gone(Kind::Zone, zone).await?;
    }
    tenant.gone(Kind::Account, tenant.home()).await?;
    tenant.secret_gone().await?;
    account.becomes("only what others made and what is to be kept is left", &lines, &[]);
    assert_eq!(tenant.remote(&bystander["id"]).as_ref(), Some(&bystander), "untouched");
    Ok(())
}

/// What goes at the end, and what goes with it.
struct Leavers {
    records: Vec<&'static str>,
    zones: Vec<&'static str>,
    lines: Vec<&'static str>,
}

/// What the long form plays besides: a zone of kflare's own, batches, a kept record, a rename in one go.
async fn more(tenant: &Tenant<'_>, account: &mut Account<'_>, leavers: &mut Leavers) -> Result<(), WaitError> {
    // Its records are there before the zone, and so they are made together.
    let one = json!({ "name": "one", "type": "A", "content": "192.0.2.11" });
    tenant.record("one", "own", &[], one).await;
    let two = json!({ "name": "two", "type": "TXT", "content": "two" });
    tenant.record("two", "own", &[], two).await;
    let three = json!({ "name": "@", "type": "MX", "content": "mail.example.net", "priority": 10, "ttl": 300 });
    tenant.record("three", "own", &[], three).await;
    for record in ["one", "two", "three"] {
        tenant.waits(Kind::Record, record, "ZoneNotFound").await?;
    }
    tenant.zone("own", &[]).await;
    tenant.settled(Kind::Zone, "own").await?;
    for record in ["one", "two", "three"] {
        tenant.settled(Kind::Record, record).await?;
    }
    let made = [
        "own",
        "own A one 192.0.2.11 1",
        r#"own TXT two "two" 1"#,
        "own MX @ mail.example.net 300",
    ];
    account.becomes("a zone and its records are created", &[], &made);

    tenant.change(Kind::Zone, "own", json!({ "paused": true })).await;
    tenant.settled(Kind::Zone, "own").await?;
    for record in ["one", "two"] {
        tenant.change(Kind::Record, record, json!({ "ttl": 120 })).await;
    }
    for record in ["one", "two"] {
        tenant.settled(Kind::Record, record).await?;
    }
    let old = ["own A one 192.0.2.11 1", r#"own TXT two "two" 1"#];
    let new = ["own A one 192.0.2.11 120", r#"own TXT two "two" 120"#];
    account.becomes("they are changed together", &old, &new);

    tenant.delete(Kind::Record, "one").await;
    let uno = json!({ "name": "uno", "type": "A", "content": "192.0.2.11" });
    tenant.record("uno", "own", &[], uno).await;
    tenant.gone(Kind::Record, "one").await?;
    tenant.settled(Kind::Record, "uno").await?;
    let (old, new) = ("own A one 192.0.2.11 120", "own A uno 192.0.2.11 1");
    account.becomes("one gets another name in one go", &[old], &[new]);

    let kept = json!({ "name": "kept", "type": "AAAA", "content": "2001:db8::1" });
    tenant.record("kept", "home", &[RETAIN], kept).await;
    tenant.settled(Kind::Record, "kept").await?;
    account.becomes("a record is created to be kept", &[], &["home AAAA kept 2001:db8::1 1"]);

    leavers.records.extend(["uno", "two", "three", "kept"]);
    leavers.zones.push("own");
    let with_zone = [r#"own TXT two "two" 120"#, "own MX @ mail.example.net 300"];
    leavers.lines.extend(["own", new]);
    leavers.lines.extend(with_zone);
    Ok(())
}
