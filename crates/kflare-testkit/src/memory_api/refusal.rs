//! Error answers, worded and shaped as Kubernetes does.

use kube::core::Status;
use kube::core::response::{StatusCause, StatusDetails, reason};

use super::resource::ResourceType;

fn failure(code: u16, reason: &str, message: impl AsRef<str>) -> Box<Status> {
    Status::failure(message.as_ref(), reason).with_code(code).boxed()
}

fn about(mut status: Box<Status>, details: StatusDetails) -> Box<Status> {
    status.details = Some(details);
    status
}

/// Details that name an object. Kubernetes puts the plural into `kind` here.
pub(super) fn details(resource: &ResourceType, name: &str) -> StatusDetails {
    StatusDetails {
        name: name.to_owned(),
        group: resource.group.clone(),
        kind: resource.plural.clone(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    }
}

pub(super) fn not_found(resource: &ResourceType, name: &str) -> Box<Status> {
    let message = format!("{} \"{name}\" not found", resource.qualified());
    about(failure(404, reason::NOT_FOUND, message), details(resource, name))
}

/// What a server says about a path it does not serve. The real one answers in plain text, which kube turns into this.
pub(super) fn unknown_path() -> Box<Status> {
    failure(
        404,
        reason::NOT_FOUND,
        "the server could not find the requested resource",
    )
}

pub(super) fn already_exists(resource: &ResourceType, name: &str) -> Box<Status> {
    let message = format!("{} \"{name}\" already exists", resource.qualified());
    about(failure(409, reason::ALREADY_EXISTS, message), details(resource, name))
}

pub(super) fn modified_meanwhile(resource: &ResourceType, name: &str) -> Box<Status> {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    conflict(resource, name, why)
}

pub(super) fn conflict(resource: &ResourceType, name: &str, why: &str) -> Box<Status> {
    let message = format!(
        "Operation cannot be fulfilled on {} \"{name}\": {why}",
        resource.qualified()
    );
    about(failure(409, reason::CONFLICT, message), details(resource, name))
}

pub(super) fn invalid(resource: &ResourceType, name: &str, causes: Vec<StatusCause>) -> Box<Status> {
    let told: Vec<String> = causes
        .iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect();
    let told = if told.len() == 1 {
        told.join("")
    } else {
        format!("[{}]", told.join(", "))
    };
    let qualified = if resource.group.is_empty() {
        resource.kind.clone()
    } else {
        format!("{}.{}", resource.kind, resource.group)
    };
    let mut details = details(resource, name);
    details.kind.clone_from(&resource.kind);
    details.causes = causes;
    about(
        failure(
            422,
            reason::INVALID,
            format!("{qualified} \"{name}\" is invalid: {told}"),
        ),
        details,
    )
}

pub(super) fn invalid_field(resource: &ResourceType, name: &str, field: &str, message: &str) -> Box<Status> {
    let cause = StatusCause {
        reason: "FieldValueInvalid".to_owned(),
        message: message.to_owned(),
        field: field.to_owned(),
    };
    invalid(resource, name, vec![cause])
}

/// A JSON patch that does not apply; a failed `test` is one, too.
pub(super) fn unprocessable_patch(why: &str) -> Box<Status> {
    let message = format!("the server rejected our request due to an error in our request: {why}");
    failure(422, reason::INVALID, message)
}

pub(super) fn bad_request(why: impl AsRef<str>) -> Box<Status> {
    failure(400, "BadRequest", why)
}

pub(super) fn method_not_allowed() -> Box<Status> {
    failure(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )
}

pub(super) fn not_acceptable(asked: &str) -> Box<Status> {
    failure(
        406,
        "NotAcceptable",
        format!("only the following media types are accepted: application/json, not {asked}"),
    )
}

pub(super) fn unsupported_media_type(content_type: &str) -> Box<Status> {
    let message = format!("the body of the request was in an unknown format: {content_type}");
    failure(415, "UnsupportedMediaType", message)
}

pub(super) fn too_old(version: u64, oldest: u64) -> Box<Status> {
    failure(
        410,
        "Expired",
        format!("too old resource version: {version} ({oldest})"),
    )
}

pub(super) fn continue_expired() -> Box<Status> {
    let message = "The provided continue parameter is too old to display a consistent list result. You must start a new \
                   list without the continue parameter.";
    failure(410, "Expired", message)
}

pub(super) fn too_new(version: u64, current: u64) -> Box<Status> {
    let cause = StatusCause {
        reason: "ResourceVersionTooLarge".to_owned(),
        message: "Too large resource version".to_owned(),
        field: String::new(),
    };
    let details = StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: vec![cause],
        retry_after_seconds: 1,
    };
    let message = format!("Timeout: Too large resource version: {version}, current: {current}");
    about(failure(504, "Timeout", message), details)
}
