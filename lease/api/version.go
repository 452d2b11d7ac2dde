package api

import "context"

// APIVersion is that of the API, and of what the command line says with -o json:
// docs/api.md says what may change between two.
const APIVersion = "1.0"

// Version is what a server speaks.
type Version struct {
	APIVersion string `json:"api_version"`
}

// Version asks which version of the API the server speaks.
func (c *Client) Version(ctx context.Context) (v Version, err error) {
	return v, c.do(ctx, "GET", "/v1/version", nil, &v)
}
