//! The points at which a process can die.

use std::fmt;

/// Whom a call is made to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plane {
    /// The API server.
    Kubernetes,
    /// The simulator.
    Cloudflare,
}

/// A call that means the same in every run of a story: by what it is and how many of its like came before, not by ids.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// Whom it is made to.
    pub plane: Plane,
    /// The method.
    pub method: String,
    /// The path without query, ids and the tenant's name.
    pub path: String,
    /// From 1, among the calls of that plane, method and path.
    pub nth: usize,
}

impl Call {
    /// Whether it changes nothing.
    pub fn only_reads(&self) -> bool {
        self.method == "GET"
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            plane,
            method,
            path,
            nth,
        } = self;
        write!(f, "{plane:?} {method} {path} #{nth}")
    }
}

/// On which side of the effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// The request is lost.
    Before,
    /// The reply is lost.
    After,
}

/// Where a process dies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// At which call.
    pub call: Call,
    /// On which side of its effect.
    pub moment: Moment,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = match self.moment {
            Moment::Before => "before",
            Moment::After => "after",
        };
        write!(f, "{moment} {}", self.call)
    }
}

/// The path of a call without what differs from run to run: Cloudflare's ids and the name of the tenant.
pub fn template(path: &str, tenant: &str) -> String {
    let is_id = |part: &str| part.len() == 32 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts = path.split('/').map(|part| match part {
        part if part == tenant => "{tenant}",
        part if is_id(part) => "{id}",
        part => part,
    });
    parts.collect::<Vec<_>>().join("/")
}
