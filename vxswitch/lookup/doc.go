// Package lookup has the second lookup of virtual switches (vxswitch.Forwarder),
// by MAC addresses learned from sources (Learning), by those that are known (Static), by
// addresses (Prefix) or by rules (Classifier), and reads from frames what
// lookups look at (Parse).
package lookup
