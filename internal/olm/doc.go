// Package olm has the tests of the operator's bundles and catalog for the Operator
// Lifecycle Manager: operator-framework's own validators, and what those do not look
// at. It is a module of its own, since the validators want a Kubernetes of 2020.
package olm
