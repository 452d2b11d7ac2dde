package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"sublet/internal/plain"
	"sublet/internal/problem"
	"sublet/lease/api"
	"sublet/trust"
	"sublet/vnet"
)

// dialAgent connects to a host's agent.
func (s *Server) dialAgent(ctx context.Context, host vnet.HostID) (net.Conn, error) {
	target, transport, err := s.agentOf(host)
	if err != nil {
		return nil, err
	}
	conn, err := transport.DialContext(ctx, "tcp", target.Host)
	if err != nil {
		return nil, agentUnreachable(host, err.Error())
	}
	if target.Scheme != "https" {
		return conn, nil
	}
	config := s.agentTLS.Clone()
	if config == nil {
		config = new(tls.Config)
	}
	config.ServerName = target.Hostname()
	secure := tls.Client(conn, config)
	ctx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, agentUnreachable(host, err.Error())
	}
	return secure, nil
}

// mostState bounds what an agent may answer.
const mostState = 64 << 20

// ask reads something from a host's agent.
func (s *Server) ask(ctx context.Context, host vnet.HostID, path string, result any) error {
	target, transport, err := s.agentOf(host)
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	return s.read(ctx, host, transport, target.JoinPath(path), result)
}

// read reads JSON from a host's agent.
func (s *Server) read(ctx context.Context, host vnet.HostID, transport *http.Transport, at *url.URL, result any) error {
	body, err := s.get(ctx, host, transport, at)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, result); err != nil {
		return fmt.Errorf("read what the agent of %s answers: %w", host, err)
	}
	return nil
}

// get is what a host's agent answers, of bounded size.
func (s *Server) get(ctx context.Context, host vnet.HostID, transport *http.Transport, at *url.URL) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, agentUnreachable(host, err.Error())
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, agentUnreachable(host, "it answers "+response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, mostState))
	if err != nil {
		return nil, agentUnreachable(host, err.Error())
	}
	return body, nil
}

// agentTimeout bounds connecting to an agent and, but for sessions, waiting
// for its answer's header.
const agentTimeout = 10 * time.Second

// proxy passes a request, with its upgrade if it asks for one, on to a host's
// agent. The agent trusts the server: who may do this was decided here.
func (s *Server) proxy(w http.ResponseWriter, r *http.Request, c *call, host vnet.HostID, path string) error {
	target, transport, err := s.agentOf(host)
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	var failed error
	proxy := httputil.ReverseProxy{
		Transport:      transport,
		FlushInterval:  -1, // streams
		ModifyResponse: problem.Mend,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = &url.URL{Scheme: target.Scheme, Host: target.Host, Path: path, RawQuery: p.In.URL.RawQuery}
			p.Out.Host = target.Host
			trust.WithoutBearer(p.Out.Header)
			p.Out.Header.Set("Sublet-Caller", c.Name)
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = agentUnreachable(host, err.Error()) },
	}
	proxy.ServeHTTP(w, r)
	return failed
}

func agentUnreachable(host vnet.HostID, why string) error {
	return &api.Problem{Status: http.StatusBadGateway, Detail: fmt.Sprintf("the agent of %s cannot be reached: %s", host, plain.Text(why))}
}

// agentOf makes the way to a host's agent.
func (s *Server) agentOf(host vnet.HostID) (*url.URL, *http.Transport, error) {
	s.mu.Lock()
	agent := s.agents[host]
	s.mu.Unlock()
	address := agent.report.Agent
	if address == "" {
		return nil, nil, agentUnreachable(host, "it has not reported yet")
	}
	target, transport, err := s.reach(address)
	if err == nil && agent.from.IsValid() {
		pin(transport, target, agent.from)
	}
	return target, transport, err
}

// reach makes the way to an address: a socket's path or an https URL.
func (s *Server) reach(address string) (*url.URL, *http.Transport, error) {
	dialer := &net.Dialer{Timeout: agentTimeout}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext,
		TLSClientConfig: s.agentTLS, TLSHandshakeTimeout: agentTimeout}
	if strings.HasPrefix(address, "/") {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", address)
		}
		return &url.URL{Scheme: "http", Host: "agent"}, transport, nil
	}
	target, err := url.Parse(address)
	if err != nil {
		return nil, nil, fmt.Errorf("reach the agent at %q: %w", address, err)
	}
	return target, transport, nil
}
