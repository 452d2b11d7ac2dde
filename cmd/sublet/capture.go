package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sublet/agent/capture"
	"sublet/agent/session"
	"sublet/lease/api"
	"sublet/vnet"
)

// captureOptions are what a user bounds a capture by.
type captureOptions struct {
	file   string
	at     string // node at whose end of the link, or both; "": the first
	filter string
	count  uint64
	span   time.Duration
	snap   int
}

func (a *app) capture() *cobra.Command {
	var o captureOptions
	c := &cobra.Command{
		Use:   "capture NAME/LINK...",
		Short: "Write the packets of virtual links as pcapng, to a file or a pipe",
		Long: `Write the packets that pass virtual links, both ways, as pcapng until
interrupted, or until --count or --for is reached: as they leave and reach the
node at the link's first end, or at the end that --at names, or at both ends
(--at both). Each end is an interface of the file, and --count is of each.

--filter is an expression as tcpdump has it (pcap-filter(7)), which tcpdump on
this machine compiles; what it does not choose never leaves the host.`,
		Example: "  sublet capture hello/a-b -w hello.pcapng\n  sublet capture hello/a-b --at b -c 100 --for 10s -w b.pcapng\n" +
			"  sublet capture hello/a-b hello/b-c --at both --filter 'tcp port 80' -w web.pcapng\n  sublet capture hello/a-b | tshark -r -",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completePart(linksOf),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkSink(o.file); err != nil {
				return err
			}
			return a.runCapture(c, args, o)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.file, "write", "w", "-", "file to write, - for standard output")
	f.StringVar(&o.at, "at", "", "node at whose end of the link packets are seen, or both (default: the link's first)")
	f.StringVar(&o.filter, "filter", "", "only packets that this chooses, as 'tcp port 80' (pcap-filter(7))")
	f.Uint64VarP(&o.count, "count", "c", 0, "end after so many packets")
	f.DurationVar(&o.span, "for", 0, "end after so long")
	f.IntVar(&o.snap, "snap", 0, "bytes to keep of each packet (default: all)")
	return c
}

func (a *app) runCapture(c *cobra.Command, names []string, o captureOptions) error {
	query, err := o.query(c)
	if err != nil {
		return badInput{err}
	}
	if o.filter != "" {
		f, err := compileFilter(c.Context(), o.filter)
		if err != nil {
			return err
		}
		query.Set("filter", f.String())
	}
	ends, err := a.captureEnds(c.Context(), names, o.at)
	if err != nil {
		return err
	}
	var streams []io.Reader
	for _, end := range ends {
		query.Set("end", strconv.Itoa(end.end))
		stream, err := a.openCapture(c.Context(), end.path+"?"+query.Encode())
		if err != nil {
			return err
		}
		defer stream.Close()
		streams = append(streams, stream)
	}
	return a.copyCapture(c.Context(), streams, o.file)
}

// linkEnd is where packets are seen: the path of a link's captures, and the end.
type linkEnd struct {
	path string
	end  int
}

// captureEnds are the ends of links that the caller named.
func (a *app) captureEnds(ctx context.Context, names []string, at string) (ends []linkEnd, err error) {
	for _, name := range names {
		words, err := splitName(name, 2, "NAME/LINK")
		if err != nil {
			return nil, err
		}
		_, l, err := a.lookUp(ctx, strings.TrimPrefix(words[0]+"/"+words[1], "/"))
		if err != nil {
			return nil, err
		}
		path := api.CapturePath(l.ID(), words[2])
		switch at {
		case "":
			ends = append(ends, linkEnd{path, 0})
		case "both":
			ends = append(ends, linkEnd{path, 0}, linkEnd{path, 1})
		default:
			end, err := endAt(l, words[2], at)
			if err != nil {
				return nil, badInput{err}
			}
			ends = append(ends, linkEnd{path, end})
		}
	}
	return ends, nil
}

func (a *app) openCapture(ctx context.Context, path string) (io.ReadCloser, error) {
	conn, err := a.client().Dial(ctx)
	if err != nil {
		return nil, err
	}
	stream, err := session.OpenStream(ctx, conn, path)
	return stream, explain(err)
}

func (a *app) copyCapture(ctx context.Context, from []io.Reader, file string) error {
	out, err := a.sink(file)
	if err != nil {
		return err
	}
	defer out.Close()
	if len(from) == 1 {
		_, err = io.Copy(out, from[0])
	} else {
		err = capture.Merge(ctx, from, out)
	}
	if ctx.Err() != nil { // interrupted: that is how captures end
		return nil
	}
	return explain(err)
}

// query states the bounds as the API has them.
func (o captureOptions) query(c *cobra.Command) (url.Values, error) {
	query, f := make(url.Values), c.Flags()
	if f.Changed("count") {
		query.Set("count", strconv.FormatUint(o.count, 10))
	}
	if f.Changed("for") {
		query.Set("for", o.span.String())
	}
	if f.Changed("snap") {
		query.Set("snap", strconv.Itoa(o.snap))
	}
	switch {
	case f.Changed("count") && o.count == 0:
		return nil, errors.New("--count 0: state how many packets, or leave it out")
	case f.Changed("for") && o.span <= 0:
		return nil, fmt.Errorf("--for %s: state how long, or leave it out", o.span)
	case f.Changed("snap") && (o.snap <= 0 || o.snap > capture.MaxSnapLen):
		return nil, fmt.Errorf("--snap %d: state 1 to %d bytes, or leave it out", o.snap, capture.MaxSnapLen)
	}
	return query, nil
}

// endAt is which end of a link a node is.
func endAt(l vnet.Lease, link, node string) (int, error) {
	v, ok := l.Topology().Link(link)
	if !ok {
		return 0, fmt.Errorf("%s has no link %q", l.ID(), link)
	}
	for end, name := range v.Ends {
		if name == node {
			return end, nil
		}
	}
	return 0, fmt.Errorf("--at %s: link %s ends at %s and %s", node, link, v.Ends[0], v.Ends[1])
}

// checkSink refuses a terminal as a place for a capture.
func (a *app) checkSink(name string) error {
	if f, ok := a.out.(*os.File); ok && name == "-" && term.IsTerminal(int(f.Fd())) {
		return badInput{errors.New("a capture is binary: write it to a file with -w FILE, or pipe it into tshark -r -")}
	}
	return nil
}

// sink opens what a capture is written to, once there is one: a file that is
// there already is not emptied in vain.
func (a *app) sink(name string) (io.WriteCloser, error) {
	if name != "-" {
		return create(name, 0o600) // what passed a link is its tenant's
	}
	return nopCloser{a.out}, nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
