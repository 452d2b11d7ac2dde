// Package api is the wire of the tenants', the operator's and the agents' API:
// HTTP/JSON on a unix socket, on request also on TCP with mutual TLS. It has
// the types of bodies and answers, the form of problems, and a Client. Package
// server answers. openapi.yaml describes it and is served at /v1/openapi.yaml.
package api
