package main

import (
	"path/filepath"

	"sublet/lease/api"
)

// client calls the server of the run directory.
func (a *app) client() *api.Client {
	return api.NewClient(filepath.Join(a.run, api.SocketName))
}
