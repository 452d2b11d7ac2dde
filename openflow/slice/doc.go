// Package slice shares one OpenFlow 1.3 switch between several controllers, each of
// which has a slice of it and believes to be alone (Sherwood et al.,
// "FlowVisor: A Network Virtualization Layer"). It stands between them
// and the switch:
//
//	controllers -> channel.Hub of a slice -> Local -> switch
//
// A slice is ports, and packets by their header fields; slices have no packet in
// common. One may be the default: it has the packets that no other has. Each slice has
// tables of its own on the switch. Table 0 is nobody's: it sends the packets of a
// slice to the first of the slice's tables, which the controller knows as 0. So no
// entry can take packets of another slice, whatever it matches, and no two controllers
// can write one entry. What an entry, group or packet-out does is checked before
// anything is sent: it leaves by the slice's ports only, and stays a packet of the
// slice.
//
// Numbers of tables, groups and meters are translated, both ways. A Local are the slices
// of a switch: they are changed while it forwards, and with a Memory what they have
// outlives the process. A Proxy has one of a switch that it is connected to; without a
// Memory it empties the switch first. When the switch or the proxy ends, controllers have
// to connect again.
package slice
