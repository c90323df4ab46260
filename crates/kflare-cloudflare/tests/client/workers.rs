//! Paths and bodies of Workers and their routes.

use kflare_cloudflare::endpoints::{
    worker_routes::{self, WantedRoute},
    workers::{self, Module, Subdomain},
};
use serde_json::json;

use crate::script::{Step, client};

const BASE: &str = "https://api.example.com/client/v4";

#[tokio::test(start_paused = true)]
async fn an_upload_is_a_form_of_metadata_and_modules() {
    let (client, calls) =
        client(|_, _| Step::ok(&json!({"id": "web", "etag": "e", "tags": null, "startup_time_ms": 1})));
    let modules = [Module {
        name: "index.js".to_owned(),
        content_type: "application/javascript+module".to_owned(),
        content: "export default {}".into(),
    }];
    let metadata = json!({"main_module": "index.js"});
    let script = workers::upload(&client, "a1", "web", &metadata, &modules)
        .await
        .unwrap();
    assert_eq!((script.id.as_str(), script.etag.as_deref()), ("web", Some("e")));
    let call = &calls.all()[0];
    assert_eq!(
        call.uri,
        format!("{BASE}/accounts/a1/workers/scripts/web?bindings_inherit=strict")
    );
    assert_eq!(
        call.headers["content-type"],
        "multipart/form-data; boundary=kflare-form-0"
    );
    let body = String::from_utf8(call.body.to_vec()).unwrap();
    assert!(
        body.contains("name=\"metadata\"\r\nContent-Type: application/json\r\n\r\n{\"main_module\":\"index.js\"}\r\n")
    );
    assert!(body.contains(
        "name=\"index.js\"; filename=\"index.js\"\r\nContent-Type: application/javascript+module\r\n\r\nexport"
    ));
}

#[tokio::test(start_paused = true)]
async fn settings_schedules_and_the_subdomain() {
    let (client, calls) = client(|_, call| match call.uri.rsplit('/').next().unwrap() {
        "settings" => {
            Step::ok(&json!({"bindings": [{"name": "K", "type": "secret_text"}], "placement": {}, "tags": null}))
        }
        "schedules" => Step::ok(&json!({"schedules": [{"cron": "0 * * * *", "created_on": "x"}]})),
        "subdomain" => Step::ok(&json!({"enabled": true, "previews_enabled": null})),
        _ => Step::ok(
            &json!([{"id": "web", "deployment_id": "", "routes": null, "modified_on": "2026-01-01T00:00:00.000001Z"}]),
        ),
    });
    let settings = workers::settings(&client, "a1", "web").await.unwrap();
    assert_eq!((settings.bindings.len(), settings.logpush), (1, false));
    workers::patch_settings(&client, "a1", "web", &json!({"logpush": true}))
        .await
        .unwrap();
    assert_eq!(workers::schedules(&client, "a1", "web").await.unwrap(), ["0 * * * *"]);
    workers::set_schedules(&client, "a1", "web", &["0 3 * * *".to_owned()])
        .await
        .unwrap();
    let on = workers::subdomain(&client, "a1", "web").await.unwrap();
    assert_eq!(
        on,
        Subdomain {
            enabled: true,
            previews_enabled: false
        }
    );
    workers::set_subdomain(&client, "a1", "web", on).await.unwrap();
    let listed = workers::list(&client, "a1").await.unwrap();
    assert_eq!(listed[0].modified_on.as_deref(), Some("2026-01-01T00:00:00.000001Z"));
    let bodies: Vec<String> = calls
        .all()
        .iter()
        .map(|call| format!("{} {}", call.method, String::from_utf8_lossy(&call.body)))
        .collect();
    assert!(bodies[1].starts_with("PATCH --kflare-form-0\r\nContent-Disposition: form-data; name=\"settings\"\r\n"));
    assert_eq!(bodies[3], r#"PUT [{"cron":"0 3 * * *"}]"#);
    assert_eq!(bodies[5], r#"POST {"enabled":true,"previews_enabled":false}"#);
}

#[tokio::test(start_paused = true)]
async fn routes_without_a_worker_have_no_script() {
    let (client, calls) = client(|_, call| {
        let route = json!({"id": "r1", "pattern": "example.com/*", "script": null});
        let is_list = call.method == "GET" && call.uri.ends_with("/routes");
        Step::ok(&if is_list { json!([route]) } else { route })
    });
    let wanted = WantedRoute {
        pattern: "example.com/*".to_owned(),
        script: None,
    };
    assert_eq!(worker_routes::list(&client, "z1").await.unwrap()[0].script, None);
    worker_routes::create(&client, "z1", &wanted).await.unwrap();
    worker_routes::update(&client, "z1", "r1", &wanted).await.unwrap();
    worker_routes::get(&client, "z1", "r1").await.unwrap();
    worker_routes::delete(&client, "z1", "r1").await.unwrap();
    assert_eq!(calls.all()[1].body, r#"{"pattern":"example.com/*"}"#);
    assert_eq!(calls.uris()[4], format!("{BASE}/zones/z1/workers/routes/r1"));
}
