//! Serves a simulator: `cargo run -p kflare-sim --example serve -- 127.0.0.1:8080 [SEED.json]`.

use std::net::SocketAddr;
use std::path::PathBuf;

use kflare_sim::{ServeOptions, SimConfig, SimOptions, run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let listen: SocketAddr = arguments.next().as_deref().unwrap_or("127.0.0.1:8080").parse()?;
    let seed_file = arguments.next().map(PathBuf::from);
    let (bound, address) = tokio::sync::oneshot::channel();
    let options = SimOptions {
        config: SimConfig::default(),
        seed_file,
        serve: ServeOptions {
            listen,
            tls: None,
            state_file: None,
            bound: Some(bound),
        },
    };
    tokio::spawn(async move {
        if let Ok(address) = address.await {
            println!("http://{address}/client/v4");
        }
    });
    run(options, std::future::pending()).await?;
    Ok(())
}
