package mqtt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leasehold/channel/mqtt"
)

func TestConfigFaultsAreToldByKey(t *testing.T) {
	dir := t.TempDir()
	nonsense := filepath.Join(dir, "nonsense.pem")
	if err := os.WriteFile(nonsense, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{"url", "http://broker", "url: want mqtt://HOST"},
		{"url", "mqtt://", "url: want mqtt://HOST"},
		{"url", "%zz" + token, "url: want mqtt://HOST"},
		{"url", "mqtt://user:" + token + "@broker", "url: name the account with username and password"},
		{"url", "mqtt://broker/devices", "url: a broker's address ends with its port"},
		{"url", "ws://broker/mqtt#x", "url: a broker's address ends with its port"},
		{"topics", []string{}, "topics: name at least one"},
		{"topics", []string{""}, "topics[0]: is empty"},
		{"topics", []string{"a", "a"}, `topics[1]: "a" stands there twice`},
		{"topics", []string{"a/#/b"}, "topics[0]:"},
		{"topics", []string{"a/b#"}, "topics[0]:"},
		{"topics", []string{"a/b+"}, "topics[0]:"},
		{"topics", []string{"a\x00"}, "topics[0]: is no text"},
		{"topics", []string{"$share/g"}, "topics[0]: want $share/GROUP/TOPIC"},
		{"topics", []string{strings.Repeat("x", 70_000)}, "topics[0]: has 70000 bytes"},
		{"qos", 3, "qos: want 0, 1 or 2, not 3"},
		{"qos", -1, "qos: want 0, 1 or 2, not -1"},
		{"version", "4", `version: want "5" or "3.1.1", not "4"`},
		{"client_id", "a\x00", "client_id: is no text"},
		{"username", "a\x00", "username: is no text"},
		{"ca_file", filepath.Join(dir, "none"), "ca_file: open"},
		{"ca_file", nonsense, "ca_file: " + nonsense + " holds no PEM certificate"},
		{"ca_file", nonsense, "url: ca_file, cert_file and key_file need mqtts:// or wss://"},
		{"cert_file", nonsense, "cert_file: cert_file and key_file go together"},
		{"keep_alive", "0s", "keep_alive: want 1s to 18h12m15s, not 0s"},
		{"keep_alive", "20h", "keep_alive: want 1s to 18h12m15s, not 20h0m0s"},
		{"dedupe", "id", "dedupe: want a JSON pointer such as /id, or user-property:NAME"},
		{"dedupe", "/~", "dedupe: want a JSON pointer"},
		{"dedupe", "user-property:", "dedupe: name the property"},
	} {
		config := map[string]any{"url": "mqtt://broker", "topics": []string{"a/+/#", "$share/g/a/+"}}
		config[c.key] = c.value
		_, err := build(config)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s = %.50q: got %v, want %q", c.key, c.value, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), token) {
			t.Errorf("the secret is in %q", err)
		}
	}
	t.Run("all at once", func(t *testing.T) {
		_, err := build(map[string]any{"url": "x", "topics": []string{""}, "qos": 9, "version": "9", "keep_alive": "0s", "dedupe": "x"})
		for _, key := range []string{"url:", "topics[0]:", "qos:", "version:", "keep_alive:", "dedupe:"} {
			if err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("got %v, want %s told", err, key)
			}
		}
	})
	t.Run("what version 3.1.1 lacks", func(t *testing.T) {
		_, err := build(map[string]any{
			"url": "mqtt://broker", "topics": []string{"a"}, "version": "3.1.1", "dedupe": "user-property:id", "password": map[string]string{"env": "TOKEN"},
		})
		for _, want := range []string{"dedupe: version 3.1.1 has no user properties", "password: version 3.1.1 has no password without a username"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	})
	t.Run("a literal password is refused", func(t *testing.T) {
		_, err := build(map[string]any{"url": "mqtt://broker", "topics": []string{"a"}, "username": "a", "password": token})
		if err == nil || !strings.Contains(err.Error(), "password: a literal secret is refused") || strings.Contains(err.Error(), token) {
			t.Errorf("got %v, want it refused without the secret", err)
		}
	})
}

func TestIdentity(t *testing.T) {
	for _, c := range []struct{ url, client, want string }{
		{"mqtt://Broker", "a", "broker:1883/a"},
		{"mqtt://broker:1883", "a", "broker:1883/a"},
		{"mqtts://broker", "a", "broker:8883/a"},
		{"wss://broker/mqtt", "a", "broker:443/a"},
		{"mqtt://[::1]", "a", "[::1]:1883/a"},
		{"mqtt://broker", "", ""},
	} {
		cfg, err := mqtt.Spec.Decode([]byte(`{"url":"`+c.url+`","client_id":"`+c.client+`","topics":["a"]}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Identity(); got != c.want {
			t.Errorf("%s as %q: got %q, want %q", c.url, c.client, got, c.want)
		}
	}
}
