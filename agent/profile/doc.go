// Package profile measures off line what a packet costs a function that people
// bring: a program between two interfaces. It makes two namespaces, one with the
// program and one with load:
//
//	load                     function
//	  in  ====== veth ======== eth0
//	                            |  the program, in a control group with a quota
//	  out ====== veth ======== eth1
//
// As many frames are sent as a processor can, those that come out are counted and
// dropped. The time that the program used over the packets that came out is what
// one costs; where it used less than its quota, the load was what limited it. Nothing here has a name outside
// but the control group, which the next run removes if this one is killed.
//
// What else is read of the program is a Meter each.
package profile
