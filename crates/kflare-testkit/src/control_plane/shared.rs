//! One control plane for many tests.

use tokio::sync::{Mutex, OnceCell};

use super::{Access, ControlPlane, ControlPlaneError, ControlPlaneOptions};

/// Names the kubeconfig of a control plane that serves a whole test run (`hack/with-control-plane` sets it).
pub const SHARED_KUBECONFIG_VARIABLE: &str = "KFLARE_TEST_CONTROL_PLANE";

/// Keeps the control plane of this process alive until the process ends, whose end kills it.
static OWNED: Mutex<Option<ControlPlane>> = Mutex::const_new(None);
static ACCESS: OnceCell<Access> = OnceCell::const_new();

/// The control plane shared by all tests of this process and, where [`SHARED_KUBECONFIG_VARIABLE`] is set, of the whole
/// run. Without it the first caller starts one with default options; it ends with the process.
///
/// Tests that stop the API server or pause etcd must start their own with [`ControlPlane::start`].
pub async fn shared() -> Result<Access, ControlPlaneError> {
    ACCESS
        .get_or_try_init(|| async {
            if let Some(path) = std::env::var_os(SHARED_KUBECONFIG_VARIABLE).filter(|path| !path.is_empty()) {
                return Ok(Access::from_kubeconfig(path));
            }
            let own = ControlPlane::start(ControlPlaneOptions::default()).await?;
            let access = own.access().clone();
            *OWNED.lock().await = Some(own);
            Ok(access)
        })
        .await
        .cloned()
}
