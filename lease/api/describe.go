package api

import _ "embed"

// Description of the API (OpenAPI 3.0, YAML), as served at /v1/openapi.yaml.
//
//go:embed openapi.yaml
var Description []byte
