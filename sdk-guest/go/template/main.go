package main

import "my-provider/belljar"

func init() {
	belljar.Serve(MyProvider{Directory: "/data"})
}

func main() {}
