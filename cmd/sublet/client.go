package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sublet/lease/api"
)

// credentials say who we are to a server on another machine.
type credentials struct{ cert, key, ca, token, tokenFile string }

// remoteFlags lets every command, agents included, use a server elsewhere.
func (a *app) remoteFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&a.server, "server", environment("SUBLET_SERVER", ""), "HOST:PORT of a server elsewhere, instead of the socket; of several that share a store, separated by commas: whichever answers ($SUBLET_SERVER)")
	f.StringVar(&a.tls.cert, "cert", environment("SUBLET_CERT", ""), "certificate for TLS: its common name is operator, or a host's ($SUBLET_CERT)")
	f.StringVar(&a.tls.key, "key", environment("SUBLET_KEY", ""), "its key ($SUBLET_KEY)")
	f.StringVar(&a.tls.ca, "ca", environment("SUBLET_CA", ""), "certificate of the authority that signed both sides ($SUBLET_CA)")
	f.StringVar(&a.tls.token, "token", "", "token to call by, in place of a certificate ($SUBLET_TOKEN); other users of this machine see it in the list of processes: better in the environment, or a file")
	f.StringVar(&a.tls.tokenFile, "token-file", environment("SUBLET_TOKEN_FILE", ""), "file that holds the token ($SUBLET_TOKEN_FILE)")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) (err error) {
		if err := flagsTogether(c); err != nil {
			return err
		}
		if err := a.tls.readToken(); err != nil {
			return badInput{err}
		}
		if a.server == "" {
			return nil
		}
		if a.tls.token != "" && a.tls.cert == "" && a.tls.key == "" {
			a.caller, err = api.NewBearerClient(a.server, a.tls.token, a.tls.ca)
			return asBadInput(err)
		}
		if a.caller, err = api.NewTLSClient(a.server, a.tls.cert, a.tls.key, a.tls.ca); err != nil {
			return badInput{err}
		}
		a.caller.WithToken(a.tls.token)
		return nil
	}
}

// mostToken bounds a file that holds a token, in bytes.
const mostToken = 4096

// readToken finds the token: as stated, in the file, or in the environment. The
// environment's is no default of the flag, whose help would show it.
func (c *credentials) readToken() error {
	if c.token != "" && c.tokenFile != "" {
		return fmt.Errorf("state either --token or --token-file")
	}
	if c.token == "" && c.tokenFile != "" {
		text, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return fmt.Errorf("read the token: %w", err)
		}
		if c.token = strings.TrimSpace(string(text)); c.token == "" || len(text) > mostToken {
			return fmt.Errorf("--token-file %s: it holds no token", c.tokenFile)
		}
	}
	if c.token == "" {
		c.token = os.Getenv("SUBLET_TOKEN")
	}
	for _, r := range c.token {
		if r <= ' ' || r > '~' {
			return fmt.Errorf("the token has a character that no token has: write it as sublet token create printed it")
		}
	}
	return nil
}

// client calls the server. That of the socket is made here, because shell
// completion reads --run after PersistentPreRunE.
func (a *app) client() *api.Client {
	if a.caller == nil {
		a.caller = api.NewClient(filepath.Join(a.run, api.SocketName)).WithToken(a.tls.token)
	}
	return a.caller
}
