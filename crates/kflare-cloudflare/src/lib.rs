//! The Cloudflare v4 API client.
