// Calendars for the tests, as calendar programs write them.

/** The rules of a zone. */
export const BERLIN = `BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:DAYLIGHT
DTSTART:19810329T020000
RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
END:DAYLIGHT
BEGIN:STANDARD
DTSTART:19961027T030000
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
END:STANDARD
END:VTIMEZONE
`.replaceAll("\n", "\r\n");

/** An event with these lines. */
export function event(uid: string, ...lines: string[]): string {
  return ["BEGIN:VEVENT", `UID:${uid}`, ...lines, "BEGIN:VALARM", "TRIGGER:-PT5M", "END:VALARM", "END:VEVENT", ""].join("\r\n");
}

/** A calendar with these parts. */
export function calendar(...parts: string[]): string {
  return `BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Example//Example//EN\r\n${parts.join("")}END:VCALENDAR\r\n`;
}
