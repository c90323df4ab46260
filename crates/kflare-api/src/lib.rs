//! The custom resource types of `kflare.dev/v1alpha1`: data and schema, no I/O.
