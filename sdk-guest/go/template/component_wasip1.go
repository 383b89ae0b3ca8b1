package main

// Imports the code that makes a component of the program. make generates it, so only wasm builds import it.
import _ "my-provider/build/_bindings/exports/wit_exports"
