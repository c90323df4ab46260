//! A simulator of the Cloudflare v4 API.
