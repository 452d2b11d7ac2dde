package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"sublet/lease/api"
	"sublet/vnet"
)

// leader is a store that knows until when nobody else writes it.
type leader interface{ Leads() bool }

// leads refuses to answer from a book that another server may be ahead of.
func (s *Server) leads() error {
	if store, ok := s.store.(leader); ok && !store.Leads() {
		return leaderless("this server may not lead any more")
	}
	return nil
}

// getServers lists the servers that share the store.
func (s *Server) getServers(w http.ResponseWriter, r *http.Request, _ *call) error {
	cluster, err := s.several()
	if err != nil {
		return err
	}
	servers, err := cluster.Servers(r.Context())
	if err != nil {
		return unavailable(err)
	}
	for i := range servers { // who leads answers; what it was told of that may be late
		servers[i].Leads = servers[i].Name == cluster.Name()
	}
	s.clocksOf(servers)
	return answer(w, http.StatusOK, servers)
}

func (s *Server) several() (Cluster, error) {
	if s.cluster == nil {
		return nil, &api.Problem{Status: http.StatusConflict, Detail: "this server has a store of its own, which no other shares: several servers need one (sublet serve --member, or --etcd)"}
	}
	return s.cluster, nil
}

// putServer lets a server take part; with ?replaces= in place of another.
func (s *Server) putServer(w http.ResponseWriter, r *http.Request, c *call) error {
	cluster, err := s.several()
	if err != nil {
		return err
	}
	var one api.Server
	if err := s.decode(w, r, c, &one); err != nil {
		return err
	}
	one = api.Server{Name: r.PathValue("name"), Address: one.Address, Member: one.Member}
	if err := vnet.CheckName(one.Name); err != nil {
		return &vnet.FieldError{Path: "server", Problem: err.Error()}
	}
	if err := cmp.Or(checkAddress("address", one.Address, "192.0.2.1:7443"), checkMember(one)); err != nil {
		return err
	}
	ctx, cancel := whoeverLeads(r)
	defer cancel()
	if err := cluster.AddServer(ctx, one, r.URL.Query().Get("replaces")); err != nil {
		return ofServers(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// checkAddress refuses what others cannot reach a server by.
func checkAddress(path, address, such string) error {
	if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
		return &vnet.FieldError{Path: path, Problem: fmt.Sprintf("%q is not HOST:PORT, such as %s", address, such)}
	}
	return nil
}

func checkMember(s api.Server) error {
	switch s.Member {
	case "":
		return nil
	case s.Address:
		return &vnet.FieldError{Path: "member", Problem: s.Member + " is the server's address, too: state another port"}
	}
	return checkAddress("member", s.Member, "192.0.2.1:7444")
}

// deleteServer ends a server's taking part. The last one stays.
func (s *Server) deleteServer(w http.ResponseWriter, r *http.Request, _ *call) error {
	cluster, err := s.several()
	if err != nil {
		return err
	}
	servers, err := cluster.Servers(r.Context())
	if err != nil {
		return unavailable(err)
	}
	if len(servers) == 1 && servers[0].Name == r.PathValue("name") {
		return &api.Problem{Status: http.StatusConflict, Detail: servers[0].Name + " is the only server: add another one first"}
	}
	ctx, cancel := whoeverLeads(r)
	defer cancel()
	if err := cluster.RemoveServer(ctx, r.PathValue("name")); err != nil {
		return ofServers(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// whoeverLeads is for changes that may end the lead of the server that makes them:
// they go on then, and their answer is known.
func whoeverLeads(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), leaderTimeout)
}

// ofServers is the answer for an error of changing who the servers are.
func ofServers(err error) error {
	var field *vnet.FieldError
	switch {
	case errors.As(err, &field):
		return field
	case errors.Is(err, api.ErrNotFound):
		return &api.Problem{Status: http.StatusNotFound, Detail: err.Error()}
	case errors.Is(err, api.ErrConflict):
		return &api.Problem{Status: http.StatusConflict, Detail: err.Error()}
	}
	return unavailable(err)
}
