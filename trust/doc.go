// Package trust says who a caller is and what that lets them do. There are three
// identities: the operator, a host (its agent), and a tenant. On a unix socket
// the kernel names the user at the other end; on TCP a certificate of the
// common authority has the operator's or a host's name. What follows from an
// identity (caller.go) is pure; the other files read users, certificates and
// connections.
//
//	unix socket --SO_PEERCRED--> user ---> operator or tenant --+
//	                                                            +--> Caller --May--> route
//	TCP --TLS 1.3, both sides--> common name --> operator or host+
package trust
