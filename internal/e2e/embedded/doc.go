// Package embedded tries the ticket controller without a cluster as a user would:
// at a terminal, by typing what it says on its screen.
package embedded
