package belljar

// served is what the component calls.
var served Provider

// Serve says which provider the component is. Called once, from an init function: there is no main program to run.
func Serve(provider Provider) {
	served = provider
}

// Served is the provider that was given to [Serve]. For the generated part of the component.
func Served() Provider {
	if served == nil {
		panic("no provider: call belljar.Serve in an init function")
	}
	return served
}
