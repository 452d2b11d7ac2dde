package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sublet/datapath/vxswitch/live"
)

// vxswitch is the command of hosting switches on real ports.
func (a *app) vxswitch() *cobra.Command {
	c := &cobra.Command{
		Use:     "vxswitch",
		Short:   "Run a hosting switch that is leased in slices on real ports",
		Long:    "Run a hosting switch that is leased in slices on real ports. docs/vxswitch-live.md explains its description.",
		Example: "  sublet vxswitch run examples/hosting/two-tenants.yaml\n  sublet vxswitch status\n  sublet vxswitch status --host h1\n  sublet vxswitch change changed.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var socket, host string
	c.PersistentFlags().StringVar(&socket, "socket", "", "where it listens (default: vxswitch.sock in the run directory)")
	c.PersistentFlags().StringVar(&host, "host", "", "host of the substrate whose hosting switch is meant, which carries the leases' switches of kind vxswitch")
	c.MarkFlagsMutuallyExclusive("socket", "host")
	at := func() string {
		switch {
		case socket != "":
			return socket
		case host != "":
			return filepath.Join(a.run, "vxswitch", host, "socket")
		}
		return filepath.Join(a.run, "vxswitch.sock")
	}
	c.AddCommand(a.vxswitchRun(at), a.vxswitchStatus(at), a.vxswitchChange(at))
	return c
}

func (a *app) vxswitchRun(at func() string) *cobra.Command {
	return &cobra.Command{
		Use: "run FILE", Short: "Open the ports and carry frames until it is stopped", Args: cobra.ExactArgs(1),
		Example: "  sublet vxswitch run examples/hosting/two-tenants.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			config, err := a.readLive(args[0])
			if err != nil {
				return err
			}
			return a.hostLive(c.Context(), config, at())
		},
	}
}

// hostLive runs a hosting switch with its socket until ctx is done.
func (a *app) hostLive(ctx context.Context, config *live.Config, socket string) error {
	h, err := live.New(config)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, socket) }()
	ran := make(chan error, 1)
	go func() { ran <- h.Run(ctx) }()
	fmt.Fprintf(a.err, "sublet: hosting switch of %d ports and %d virtual switches, socket %s\n", len(config.Ports), len(config.Switches), socket)
	select {
	case err = <-ran:
	case err = <-served:
		cancel()
		<-ran
	}
	os.Remove(socket)
	return err
}

func (a *app) readLive(name string) (*live.Config, error) {
	text, err := a.readFile(name)
	if err != nil {
		return nil, err
	}
	return live.Parse(name, text)
}

func (a *app) vxswitchStatus(at func() string) *cobra.Command {
	var prometheus bool
	c := a.list(&cobra.Command{
		Use: "status", Short: "What its ports and virtual switches have carried and dropped", Args: cobra.NoArgs,
		Example: "  sublet vxswitch status\n  sublet vxswitch status --prometheus",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			if prometheus {
				text, err := askLive(c.Context(), at(), http.MethodGet, "metrics", nil)
				if err == nil {
					_, err = a.out.Write(text)
				}
				return err
			}
			text, err := askLive(c.Context(), at(), http.MethodGet, "status", nil)
			if err != nil {
				return err
			}
			var st live.Status
			if err := json.Unmarshal(text, &st); err != nil {
				return err
			}
			header, rows := liveRows(st)
			return a.print(st, header, rows)
		},
	})
	c.Flags().BoolVar(&prometheus, "prometheus", false, "print the text form of Prometheus")
	return c
}

func (a *app) vxswitchChange(at func() string) *cobra.Command {
	return &cobra.Command{
		Use: "change FILE", Short: "Make a running one what the file says, all of it or nothing", Args: cobra.ExactArgs(1),
		Example: "  sublet vxswitch change changed.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			text, err := a.readFile(args[0])
			if err != nil {
				return err
			}
			if _, err := live.Parse(args[0], text); err != nil {
				return err
			}
			_, err = askLive(c.Context(), at(), http.MethodPut, "config", text)
			return err
		},
	}
}

func askLive(ctx context.Context, socket, method, path string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://switch/"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := live.Dial(socket).Do(r)
	if err != nil {
		return nil, fmt.Errorf("no hosting switch answers at %s: start one with sublet vxswitch run", socket)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the hosting switch refuses: %s", strings.TrimSpace(string(text)))
	}
	return text, err
}

// liveRows are the ports of all virtual switches.
func liveRows(st live.Status) (header string, rows [][]string) {
	for _, v := range st.Switches {
		for _, p := range v.Ports {
			var causes []string
			for cause, n := range p.Out.Dropped {
				causes = append(causes, fmt.Sprintf("%s %d", cause, n.Packets))
			}
			for cause, n := range p.In.Dropped {
				if _, queued := p.Out.Dropped[cause]; !queued {
					causes = append(causes, fmt.Sprintf("%s %d", cause, n.Packets))
				}
			}
			slices.Sort(causes)
			rows = append(rows, []string{v.Name, p.Port, fmt.Sprint(p.In.Offered.Packets), fmt.Sprint(p.Out.Delivered.Packets), fmt.Sprint(p.Out.Delivered.Bytes),
				fmt.Sprint(p.Out.Queued.Packets), strings.Join(causes, ", ")})
		}
	}
	return "SWITCH PORT IN OUT OUT-BYTES QUEUED DROPPED", rows
}
