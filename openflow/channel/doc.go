// Package channel connects an OpenFlow switch with its controllers: connections
// over TCP or TLS, active and passive, negotiation, liveness, roles, bundles, and
// which controller gets which asynchronous message.
//
// A Hub hands messages to whoever drives the switch, who calls Hub.Next and
// Hub.Handle: so all of a switch happens in one goroutine, and a barrier's reply
// is written after everything before it is in force. With Hub.Watch the driver reads
// and writes connections itself, without waiting: no message goes from thread to
// thread, and what a turn answers is one system call. Connections over TLS, and all
// without Hub.Watch, have a goroutine that reads and one that writes.
//
// Queues are bounded, and each connection has its own. Messages of one connection
// are done in their order; of several connections, roles and barriers come before
// changes, these before packet-outs, and statistics last. Likewise replies are
// written before packet-ins and statistics after them. A controller that does not
// read loses packet-ins (Conn.Dropped), and is read no further while too many
// replies wait for it.
package channel
