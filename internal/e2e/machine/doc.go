// Package machine makes machines out of namespaces: each has processes, mounts,
// a network and a name of its own, and the files of the machine that it is on.
// Nodes of a cluster run on them, so that two kubelets, whose mounts, sockets and
// packet filters would meet, run beside each other. It wants Linux and root.
//
// A machine is held by its first process alone. When that one ends, and it ends
// with the program that started the machine, the kernel ends every process on it
// and lets go of its mounts and interfaces. What the kernel leaves are files and
// control groups; a Sweeper takes care of those.
//
// A Switch connects machines. None of them reaches beyond it: who is outside
// enters by Dial and Listen.
package machine
