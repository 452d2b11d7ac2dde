package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"sublet/lease/api"
)

// credentials say who we are to a server on another machine.
type credentials struct{ cert, key, ca string }

// remoteFlags lets every command, agents included, use a server elsewhere.
func (a *app) remoteFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&a.server, "server", environment("SUBLET_SERVER", ""), "HOST:PORT of a server elsewhere, instead of the socket; of several that share a store, separated by commas: whichever answers ($SUBLET_SERVER)")
	f.StringVar(&a.tls.cert, "cert", environment("SUBLET_CERT", ""), "certificate for TLS: its common name is operator, or a host's ($SUBLET_CERT)")
	f.StringVar(&a.tls.key, "key", environment("SUBLET_KEY", ""), "its key ($SUBLET_KEY)")
	f.StringVar(&a.tls.ca, "ca", environment("SUBLET_CA", ""), "certificate of the authority that signed both sides ($SUBLET_CA)")
	root.PersistentPreRunE = func(*cobra.Command, []string) (err error) {
		if a.server == "" {
			return nil
		}
		if a.caller, err = api.NewTLSClient(a.server, a.tls.cert, a.tls.key, a.tls.ca); err != nil {
			return badInput{err}
		}
		return nil
	}
}

// client calls the server. That of the socket is made here, because shell
// completion reads --run after PersistentPreRunE.
func (a *app) client() *api.Client {
	if a.caller == nil {
		a.caller = api.NewClient(filepath.Join(a.run, api.SocketName))
	}
	return a.caller
}
