// Package operator has the tests of the installable unit in
// examples/ticket-controller/deploy: what is installed from there, with the rights
// that it gives, does all that it must, and nothing of it is too much.
package operator
