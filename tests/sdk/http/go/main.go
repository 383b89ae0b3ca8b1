package main

import "month-shelf/belljar"

func init() {
	belljar.Serve(Relay{})
}

func main() {}
