// Package channel connects an OpenFlow switch with its controllers: connections
// over TCP or TLS, active and passive, negotiation, liveness, roles and which
// controller gets which asynchronous message.
//
// Each connection has a goroutine that reads and one that writes. What they
// read, a Hub hands in order to whoever drives the switch, who calls
// Hub.Handle: so all of a switch happens in one goroutine, and a barrier's reply
// is written after everything before it is in force. Echo requests are answered
// where they are read, however busy the switch is.
//
// Queues are bounded. Replies come before packet-ins; a controller that does not
// read loses packet-ins (Conn.Dropped), and is read no further while too many
// replies wait for it.
package channel
