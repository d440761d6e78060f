package admin

import (
	"context"
	"net/http"
	"net/url"

	"leasehold/internal/apitoken"
	"leasehold/internal/vault"
)

// Secrets lists the secrets in the store, without their values.
func (c *Client) Secrets(ctx context.Context) (Page[vault.Secret], error) {
	return get[Page[vault.Secret]](ctx, c, "/v1/secrets", nil)
}

// SetSecret gives a secret a value.
func (c *Client) SetSecret(ctx context.Context, name, value string) (SecretSet, error) {
	var done SecretSet
	return done, c.call(ctx, http.MethodPut, "/v1/secrets/"+url.PathEscape(name), SecretValue{value}, nil, &done)
}

// RemoveSecret takes a secret away.
func (c *Client) RemoveSecret(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, "/v1/secrets/"+url.PathEscape(name), nil, nil, nil)
}

// Keys lists the signing keys in the store, without their values.
func (c *Client) Keys(ctx context.Context) (Page[vault.SigningKey], error) {
	return get[Page[vault.SigningKey]](ctx, c, "/v1/keys", nil)
}

// CreateKey makes a signing key for a target. The answer is the only one with its value.
func (c *Client) CreateKey(ctx context.Context, target string) (NewKey, error) {
	return post[NewKey](ctx, c, "/v1/keys", KeyOrder{target})
}

// RetireKey has a signing key sign nothing more.
func (c *Client) RetireKey(ctx context.Context, id string) (vault.SigningKey, error) {
	return post[vault.SigningKey](ctx, c, "/v1/keys/"+url.PathEscape(id)+"/retire", nil)
}

// RemoveKey forgets a signing key.
func (c *Client) RemoveKey(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "/v1/keys/"+url.PathEscape(id), nil, nil, nil)
}

// RotateMaster seals everything with another master key.
func (c *Client) RotateMaster(ctx context.Context) (vault.Rotated, error) {
	return post[vault.Rotated](ctx, c, "/v1/keys/rotate-master", nil)
}

// Tokens lists the tokens of the API, without their texts.
func (c *Client) Tokens(ctx context.Context) (Page[apitoken.Token], error) {
	return get[Page[apitoken.Token]](ctx, c, "/v1/tokens", nil)
}

// CreateToken makes a token. The answer is the only one with its text.
func (c *Client) CreateToken(ctx context.Context, o TokenOrder) (NewToken, error) {
	return post[NewToken](ctx, c, "/v1/tokens", o)
}

// RevokeToken ends a token, by its id or its name.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "/v1/tokens/"+url.PathEscape(id), nil, nil, nil)
}

// Audit lists what was written over the API, newest first.
func (c *Client) Audit(ctx context.Context, q url.Values) (Page[WriteNote], error) {
	return get[Page[WriteNote]](ctx, c, "/v1/audit", q)
}
