module my-provider

go 1.27.1

require go.bytecodealliance.org/pkg v0.0.0

// The part of wit-bindgen that generated code needs, as it came with this project.
replace go.bytecodealliance.org/pkg => ./belljar/_pkg
