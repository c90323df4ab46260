//! The API server is killed, etcd hangs and Cloudflare forgets, again and again, while work goes on.

use std::path::Path;

use kflare_sim::{SimConfig, Simulator};
use kflare_testkit::cluster::WaitError;
use kflare_testkit::control_plane::{ControlPlane, ControlPlaneOptions};
use kflare_testkit::guarded::Guarded;
use serde_json::json;

use crate::harness::Extent;
use crate::harness::life::{Life, Setting, start, until_told};
use crate::harness::site::Site;
use crate::harness::tenant::{Kind, Tenant};

/// Records in one wave of work.
const WAVE: usize = 8;

/// How many waves of work there are, and how many outages.
fn waves() -> usize {
    match Extent::asked_for() {
        Extent::Short => 2,
        Extent::Full => 6,
    }
}

/// A wave of work. What cannot be asked for now is asked for until it can.
async fn work(tenant: &Tenant<'_>, wave: usize) -> Result<(), WaitError> {
    for number in 0..WAVE {
        let fields = json!({ "name": name(wave, number), "type": "A", "content": "192.0.2.1" });
        tenant.insist_on_record(&name(wave, number), "home", fields).await?;
    }
    Ok(())
}

fn name(wave: usize, number: usize) -> String {
    format!("w{wave}-{number}")
}

/// Waits until all the work is done, and nothing else.
async fn done(tenant: &Tenant<'_>) -> Result<(), WaitError> {
    for wave in 0..waves() {
        for number in 0..WAVE {
            tenant.settled(Kind::Record, &name(wave, number)).await?;
        }
    }
    Ok(())
}

fn expected() -> std::collections::BTreeSet<String> {
    let all = (0..waves()).flat_map(|wave| (0..WAVE).map(move |number| name(wave, number)));
    let records = all.map(|name| format!("home A {name} 192.0.2.1 1"));
    records.chain(["home".to_owned()]).collect()
}

async fn settle(tenant: &Tenant<'_>, setting: Setting, lives: &mut Vec<Life>) -> Result<(), WaitError> {
    lives.push(Life::begin(tenant, setting).await?);
    tenant.connect().await;
    tenant
        .zone("home", &[(kflare_api::names::ADOPTION_POLICY, "adopt")])
        .await;
    tenant.settled(Kind::Zone, "home").await.map(drop)
}

/// One outage after each wave of work, while that is under way.
async fn play(prefix: &str, mut outage: impl AsyncFnMut(&mut ControlPlane, &Tenant<'_>) -> Result<(), WaitError>) {
    let mut control_plane = ControlPlane::start(ControlPlaneOptions::default()).await.unwrap();
    let site = Site::on(control_plane.access()).await;
    let tenant = Tenant::move_in(&site, prefix).await;
    let mut lives = Vec::new();
    let setting = Setting {
        kubeconfig: Some(control_plane.access().kubeconfig_path().to_owned()),
        ..Setting::default()
    };
    let story = async |lives: &mut Vec<Life>| {
        settle(&tenant, setting, lives).await?;
        for wave in 0..waves() {
            work(&tenant, wave).await?;
            outage(&mut control_plane, &tenant).await?;
        }
        done(&tenant).await?;
        assert!(lives[0].is_running(), "the controller has outlived it all");
        lives[0].stop(&tenant).await?;
        assert_eq!(tenant.account(), expected());
        let created = tenant.effects()["POST /zones/{zone_id}/dns_records"];
        assert_eq!(created, waves() * WAVE, "each record is created once");
        Ok(())
    };
    tenant.tell(&mut lives, story).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_is_killed_while_work_goes_on_costs_nothing() {
    play("killed", async |control_plane, _| {
        control_plane.restart_api_server().await.unwrap();
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_that_hangs_while_work_goes_on_costs_nothing() {
    play("hangs", async |control_plane, tenant| {
        control_plane.pause_etcd().unwrap();
        // Until the API server itself says so.
        let noticed = async || {
            let question = axum::http::Request::get("/readyz/etcd").body(Vec::new());
            let answer = tenant.site.admin.request_text(question?).await;
            Ok::<_, axum::http::Error>(answer.is_err().then_some(()))
        };
        let noticed = tenant.until("the API server without etcd", noticed).await;
        control_plane.resume_etcd().unwrap();
        noticed
    })
    .await;
}

/// `kflare sim`, on the state in this file.
fn simulator(folder: &Path, listen: &str) -> Guarded {
    let arguments = [
        "sim".to_owned(),
        format!("--listen={listen}"),
        format!("--state={}", folder.join("state").display()),
        "--log-format=json".to_owned(),
    ];
    start(&folder.join("log"), &[], &arguments)
}

/// What the file of a simulator that has been stopped holds.
fn reloaded(folder: &Path) -> Simulator {
    let simulator = Simulator::new(SimConfig::default());
    assert!(simulator.load(&folder.join("state")).unwrap());
    simulator
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cloudflare_that_is_killed_and_forgets_its_last_moments_is_put_right() {
    let site = Site::shared().await;
    let folder = tempfile::tempdir().unwrap();
    let tenant = Tenant::move_in(&site, "forgets").await;
    site.cloudflare.save(&folder.path().join("state")).unwrap();
    let mut process = simulator(folder.path(), "127.0.0.1:0");
    let address = until_told(&tenant, &folder.path().join("log"), "simulator listens")
        .await
        .unwrap();
    let setting = Setting {
        cloudflare: Some(format!("http://{address}/client/v4")),
        // What Cloudflare has forgotten is noticed then.
        drift_check: Some("10s".to_owned()),
        ..Setting::default()
    };
    let mut lives = Vec::new();
    let story = async |lives: &mut Vec<Life>| {
        settle(&tenant, setting, lives).await?;
        for wave in 0..waves() {
            work(&tenant, wave).await?;
            process.kill();
            process = simulator(folder.path(), &address);
        }
        done(&tenant).await?;
        // The state file follows each change closely.
        let whole = async || {
            let held = reloaded(folder.path());
            Ok::<_, String>((tenant.account_in(&held) == expected()).then_some(()))
        };
        tenant.until("everything there again", whole).await?;
        assert!(lives[0].is_running(), "the controller has outlived it all");
        lives[0].stop(&tenant).await?;
        process.signal("TERM").unwrap();
        let ended = async || process.exited();
        tenant.until("the end of the simulator", ended).await?;
        assert_eq!(tenant.account_in(&reloaded(folder.path())), expected());
        Ok(())
    };
    tenant.tell(&mut lives, story).await;
}
