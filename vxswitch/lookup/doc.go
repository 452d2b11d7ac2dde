// Package lookup has the second lookup of virtual switches (vxswitch.Forwarder),
// by MAC addresses learned from sources (Learning), and reads from frames what
// lookups look at (Parse).
package lookup
