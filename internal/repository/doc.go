// Package repository tests the rules about the repository itself: which package
// may import what, what the module may depend on, and that everything exported
// is documented. It has tests alone, and nothing imports it.
//
// A rule is a function over plain values, tested on small examples that break
// it, and then held against the repository as it is.
package repository
