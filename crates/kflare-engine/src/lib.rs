//! The generic reconcile engine. It knows no kind by name and no Cloudflare path.
