// Package proxy stands between a program under test and a server, and breaks
// what lies between them at a moment that the test chooses.
//
// TCP passes bytes and can cut, stall or refuse connections. HTTP understands
// requests: it keeps a journal of them, and holds the one that a test waits for,
// before the server has seen it or after the server has carried it out. What the
// test then does (kill the program, drop the connection, give another answer)
// happens exactly there.
package proxy
