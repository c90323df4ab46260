//! What the metrics server shows of itself: a certificate made for this process, or one from files, read again when they
//! change.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum_server::tls_rustls::RustlsConfig;
use prometheus::{IntCounter, Registry};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use sha2::{Digest, Sha256};
use tokio::time::MissedTickBehavior;

/// Time between two looks at the files. They are polled: Kubernetes swaps the directory of a mounted Secret by a symbolic
/// link, which watches on files miss.
const INTERVAL: Duration = Duration::from_secs(10);

/// A certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {} (--metrics-cert-dir must hold tls.crt and tls.key)", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{} holds no usable PEM", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: rustls::pki_types::pem::Error,
    },
    /// Certificate and key do not fit together, or are of an unknown form.
    #[error("the certificate and its key cannot be used")]
    Unusable(#[from] rustls::Error),
    /// No certificate could be made.
    #[error("cannot make a self-signed certificate")]
    SelfSigned(#[from] rcgen::Error),
    /// The counters of the files are registered twice.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}

/// A certificate that is being served.
pub struct Served {
    config: RustlsConfig,
    files: Option<Files>,
}

impl Served {
    /// A certificate of this process, for these names.
    pub fn self_signed(names: &[String]) -> Result<Self, CertificateError> {
        let made = rcgen::generate_simple_self_signed(names)?;
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let config = server_config(vec![made.cert.der().clone()], key)?;
        Ok(Self {
            config: RustlsConfig::from_config(config),
            files: None,
        })
    }

    /// `tls.crt` and `tls.key` of a directory.
    pub fn from_directory(directory: &Path, registry: &Registry) -> Result<Self, CertificateError> {
        let counter = |name: &str, help: &str| -> Result<IntCounter, CertificateError> {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        let mut files = Files {
            certificate: directory.join("tls.crt"),
            key: directory.join("tls.key"),
            seen: None,
            reads: counter("certwatcher_read_certificate_total", "Certificates read")?,
            failures: counter(
                "certwatcher_read_certificate_errors_total",
                "Certificates that could not be read",
            )?,
        };
        let config = files.load()?;
        Ok(Self {
            config: RustlsConfig::from_config(config),
            files: Some(files),
        })
    }

    /// For an acceptor, which follows later changes.
    pub fn config(&self) -> RustlsConfig {
        self.config.clone()
    }

    /// Looks at the files for ever. A certificate that cannot be used is reported, once, and the old one is kept.
    pub async fn keep_fresh(mut self) {
        let Some(mut files) = self.files.take() else {
            return std::future::pending().await;
        };
        let mut interval = tokio::time::interval(INTERVAL);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            match files.load_if_changed() {
                Ok(None) => {}
                Ok(Some(config)) => {
                    self.config.reload_from_config(config);
                    tracing::info!(file = %files.certificate.display(), "the certificate of the metrics server was renewed");
                }
                Err(error) => tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the certificate of the metrics server cannot be renewed; the old one is kept"
                ),
            }
        }
    }
}

/// Where a certificate and its key come from.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    /// SHA-256 of what they held at the last look; `None` where they could not be read.
    seen: Option<[u8; 32]>,
    reads: IntCounter,
    failures: IntCounter,
}

impl Files {
    fn load(&mut self) -> Result<Arc<ServerConfig>, CertificateError> {
        let (certificate, key) = self.read()?;
        self.seen = Some(digest(&certificate, &key));
        self.parse(&certificate, &key)
    }

    /// None if nothing changed since the last look, whether it was usable or not.
    fn load_if_changed(&mut self) -> Result<Option<Arc<ServerConfig>>, CertificateError> {
        let (certificate, key) = match self.read() {
            Ok(read) => read,
            Err(error) => {
                self.failures.inc();
                // Reported once, until they can be read again.
                return if self.seen.take().is_some() {
                    Err(error)
                } else {
                    Ok(None)
                };
            }
        };
        let digest = digest(&certificate, &key);
        if self.seen.replace(digest) == Some(digest) {
            return Ok(None);
        }
        match self.parse(&certificate, &key) {
            Ok(config) => Ok(Some(config)),
            Err(error) => {
                self.failures.inc();
                Err(error)
            }
        }
    }

    /// Both are small, and mounted Secrets are in memory: reading them does not hold the thread up.
    fn read(&self) -> Result<(Vec<u8>, Vec<u8>), CertificateError> {
        let read = |path: &PathBuf| {
            fs::read(path).map_err(|source| CertificateError::Read {
                path: path.clone(),
                source,
            })
        };
        Ok((read(&self.certificate)?, read(&self.key)?))
    }

    fn parse(&self, certificate: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, CertificateError> {
        let no_pem = |path: &PathBuf| {
            let path = path.clone();
            |source| CertificateError::Pem { path, source }
        };
        let chain = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<Vec<_>, _>>()
            .map_err(no_pem(&self.certificate))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(no_pem(&self.key))?;
        let config = server_config(chain, key)?;
        self.reads.inc();
        Ok(config)
    }
}

fn digest(certificate: &[u8], key: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(certificate.len().to_le_bytes());
    hash.update(certificate);
    hash.update(key);
    hash.finalize().into()
}

fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
