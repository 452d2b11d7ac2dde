// Package web is the page: what a browser shows of a server, and may do there in
// the name of the one user who started it.
//
//	browser --HTTP, loopback, secret--> Handler --the user's own way--> server
//
// The handler keeps nothing. It serves the page's files, passes calls of the API
// on, and translates what browsers do not have: requests as YAML, consoles over
// WebSocket (RFC 6455) and captures as files. Every call but those of the files
// needs the secret, which the page has from the fragment of its address: so other
// users of the machine, and pages of other sites, cannot use it.
package web
