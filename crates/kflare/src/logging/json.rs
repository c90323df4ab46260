//! Log lines as JSON: one object a line, flat. The fields of the spans a line was written in are fields of the line, so
//! that a line can be found by the resource it is about.

use std::{error::Error, fmt};

use serde_json::{Map, Value};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormattedFields,
        format::{JsonFields, Writer},
    },
    registry::LookupSpan,
};

/// See the module. Spans have to be formatted with [`JsonFields`].
pub(super) struct JsonLines;

impl<S> FormatEvent<S, JsonFields> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let mut line = Line::default();
        line.put("timestamp", format!("{:.6}", jiff::Timestamp::now()).into());
        line.put("level", metadata.level().as_str().into());
        line.put("target", metadata.target().into());
        event.record(&mut line);
        // The inner span knows best.
        for span in context.event_scope().into_iter().flatten() {
            let extensions = span.extensions();
            let Some(fields) = extensions.get::<FormattedFields<JsonFields>>() else {
                continue;
            };
            let fields: Map<String, Value> = serde_json::from_str(&fields.fields).unwrap_or_default();
            for (name, value) in fields {
                line.put_if_absent(&name, value);
            }
        }
        writeln!(writer, "{line}")
    }
}

/// The fields of a line, in their order, each name once.
#[derive(Default)]
struct Line(Vec<(String, Value)>);

impl Line {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    fn put_if_absent(&mut self, name: &str, value: Value) {
        if !self.has(name) {
            self.0.push((name.to_owned(), value));
        }
    }

    /// Nothing is lost: a second field of one name gets an underscore.
    fn put(&mut self, name: &str, value: Value) {
        let mut name = name.to_owned();
        while self.has(&name) {
            name.push('_');
        }
        self.0.push((name, value));
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (at, (name, value)) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { "," };
            write!(f, "{separator}{}:{value}", Value::from(name.as_str()))?;
        }
        f.write_str("}")
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field.name(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), value.into());
    }

    /// With its causes.
    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put(field.name(), super::with_causes(value).into());
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use tracing_subscriber::{fmt::MakeWriter, layer::SubscriberExt};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    fn logged(body: impl FnOnce()) -> Value {
        let lines = Lines::default();
        let layer = tracing_subscriber::fmt::layer()
            .fmt_fields(JsonFields::new())
            .event_format(JsonLines)
            .with_writer(lines.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), body);
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_line_names_the_resource_of_its_span() {
        let line = logged(|| {
            let span = tracing::info_span!("reconcile", kind = "DNSRecord", namespace = "team-a", name = "www");
            span.in_scope(|| tracing::warn!(name = "inner", calls = 3_u64, "refused \"so\"\nand so"));
        });
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["message"], "refused \"so\"\nand so");
        assert_eq!(
            (&line["kind"], &line["namespace"]),
            (&"DNSRecord".into(), &"team-a".into())
        );
        assert_eq!((&line["name"], &line["calls"]), (&"inner".into(), &3.into()));
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'));
    }

    #[test]
    fn an_error_brings_its_causes_and_nothing_is_lost() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot serve")]
        struct Outer(#[source] io::Error);

        let error = Outer(io::Error::other("taken"));
        let line = logged(|| tracing::error!(error = &error as &dyn Error, message = "second", "first"));
        assert_eq!(line["error"], "cannot serve: taken");
        assert_eq!(
            (&line["message"], &line["message_"]),
            (&"first".into(), &"second".into())
        );
    }
}
