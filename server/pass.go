package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sublet/lease/api"
	"sublet/trust"
)

// Bounds of passing a request on.
const (
	leaderTimeout = 4 * time.Second // until there is a leader that can be reached
	dialLeader    = time.Second
	dialAgain     = 50 * time.Millisecond
	// lastWords is how long a leader that leads no more may take to answer: one that
	// was removed at its own word stops to lead before it has said so.
	lastWords = 500 * time.Millisecond
)

// errNotSent: the leader was not reached, so it has seen nothing of a request.
var errNotSent = errors.New("the leader cannot be reached")

// errLeadsNot: who is thought to lead has refused a request, since it leads no more.
var errLeadsNot = errors.New("the server that led does not lead any more")

// transport makes connections to the leader, whoever it is when one is made.
func (f *Front) transport(config *tls.Config) *http.Transport {
	return &http.Transport{
		MaxIdleConnsPerHost: 64, IdleConnTimeout: idleTimeout / 2,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			if config == nil {
				return nil, fmt.Errorf("%w: this server has no certificate (--cert, --key, --ca)", errNotSent)
			}
			ctx, cancel := context.WithTimeout(ctx, dialLeader)
			defer cancel()
			conn, err := (&tls.Dialer{Config: trust.TowardsServers(config)}).DialContext(ctx, "tcp", address)
			if err != nil {
				return nil, fmt.Errorf("%w at %s: %w", errNotSent, address, err)
			}
			return conn, nil
		},
	}
}

// pass has the leader answer a request. What was not sent to a leader is tried
// again with the next one; what was sent once is not, for it may have been done.
func (f *Front) pass(w http.ResponseWriter, r *http.Request) {
	until := time.Now().Add(patience(r))
	for {
		name, address, changed := f.cluster.Leader()
		err := leaderless("no server leads at the moment")
		if name == f.cluster.Name() {
			if f.leading() != nil {
				f.ServeHTTP(w, r)
				return
			}
			err = leaderless("%s is about to lead", name)
		} else if address != "" {
			if err = f.passTo(w, r, address, changed); errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errLeadsNot) {
				_ = f.cluster.Gone(r.Context(), name) // else its leadership expires
			}
		} else if name != "" {
			err = leaderless("%s leads and answers no other servers: start it with --listen", name)
		}
		if err == nil {
			return
		}
		var problem *api.Problem
		if !errors.Is(err, errNotSent) && !errors.As(err, &problem) || time.Now().After(until) || r.Context().Err() != nil {
			f.fail(w, r, unanswered(err))
			return
		}
		pause(r.Context(), dialAgain, changed)
	}
}

// living is a transport whose server has to live until it answers.
type living struct{ http.RoundTripper }

func (l living) RoundTrip(r *http.Request) (*http.Response, error) {
	return api.WhileAlive(r, l.RoundTripper.RoundTrip)
}

// patience is how long a caller waits for a leader: who knows several servers says how
// soon it would ask another one (RFC 7240, section 4.3).
func patience(r *http.Request) time.Duration {
	wait, said := strings.CutPrefix(r.Header.Get("Prefer"), "wait=")
	if seconds, err := strconv.ParseUint(wait, 10, 16); said && err == nil {
		return min(time.Duration(seconds)*time.Second, leaderTimeout)
	}
	return leaderTimeout
}

// pause waits, at most until another leads.
func pause(ctx context.Context, d time.Duration, changed <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-changed:
	case <-time.After(d):
	}
}

// unanswered is what the caller is told when no leader has answered.
func unanswered(err error) error {
	var problem *api.Problem
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.Is(err, errNotSent), errors.Is(err, errLeadsNot):
		return leaderless("%v", err)
	}
	return &api.Problem{Status: http.StatusServiceUnavailable, After: 1,
		Detail: "the server that led was lost before it answered: look whether it was done before you ask again"}
}

// leadsNot is the field in which a server refuses what another one passed on to it.
const leadsNot = "Sublet-Leads-Not"

// passTo has one server answer; an error has written nothing to the caller. When
// another leads, the answer of the former one is not waited for longer than lastWords.
func (f *Front) passTo(w http.ResponseWriter, r *http.Request, address string, changed <-chan struct{}) (failed error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-changed:
			pause(ctx, lastWords, over)
			cancel()
		case <-over:
		}
	}()
	proxy := httputil.ReverseProxy{
		Transport:     living{f.passing},
		FlushInterval: -1, // streams
		ErrorLog:      slog.NewLogLogger(f.log.Handler(), slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = &url.URL{Scheme: "http", Host: address, Path: p.In.URL.Path, RawPath: p.In.URL.RawPath, RawQuery: p.In.URL.RawQuery}
			p.Out.Host = r.Host // what browsers compare their Origin with
			failed = trust.State(p.Out.Header, r)
		},
		ModifyResponse: func(response *http.Response) error {
			if response.Header.Get(leadsNot) == "" {
				return nil
			}
			return errLeadsNot
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
	return failed
}
