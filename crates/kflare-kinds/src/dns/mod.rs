//! What DNS records mean, apart from any call: names, values and their one canonical spelling.
//!
//! Cloudflare answers many spellings of one thing, and users write many more. Here both sides are brought into one
//! canonical space, Cloudflare's own field names with one spelling for each value, so that a plain comparison finds real
//! differences and nothing else. Nothing here performs I/O.
//!
//! - [`names`]: record names, zone names and target hosts.
//! - [`txt`]: TXT values as bytes.
//! - [`svcb`]: the parameters of HTTPS and SVCB records.
//! - [`data`]: the typed fields of the data types; [`fields`] lists them.
//! - [`record`]: a whole record, as wanted and as Cloudflare reports it.

pub mod data;
pub mod fields;
pub mod names;
pub mod record;
pub mod svcb;
pub mod txt;
mod value;

pub use data::DataError;
pub use kflare_api::RecordType;
pub use names::{NameError, full_name, host_target, in_zone, zone_name};
pub use record::{RecordError, RecordValue, STRINGS, Wanted, canonical_remote, content_text, member, request_body};
