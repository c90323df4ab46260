//! One adapter a kind, and the registry that lists them.
