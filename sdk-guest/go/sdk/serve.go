package belljar

// served is the provider of the component.
var served Provider

// Serve sets the provider of the component. Call it once, from an init function: a component runs no main function.
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
