package belljar

var reporter func(done, total float64, note string)

// Report tells the caller that done of total is done, in any unit; total 0 is unknown, and done must grow. It does nothing
// unless the provider has the interface progress and the caller wants to know.
func Report(done, total float64, note string) {
	if reporter != nil {
		reporter(done, total, note)
	}
}

// OnReport sets the receiver of reports. For the generated part of the component, and for tests.
func OnReport(receive func(done, total float64, note string)) {
	reporter = receive
}
