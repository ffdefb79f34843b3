package hooks_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// authority is one that signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{key: newKey(t), cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	a.cert = sign(t, a.cert, a.cert, a.key, a.key)
	return a
}

// pool trusts the authority alone.
func (a authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// issue makes a certificate for this machine and hook.example.com that is good
// from and to so many hours from now.
func (a authority) issue(t *testing.T, from, to time.Duration) tls.Certificate {
	t.Helper()
	key := newKey(t)
	cert := sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "an endpoint"},
		NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(to),
		DNSNames: []string{"hook.example.com"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.cert, key, a.key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, cert, parent *x509.Certificate, key, parents *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, key.Public(), parents)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// secure is an endpoint behind TLS that is content with everything. host is what
// it is called by.
func secure(host string, c *tls.Config) endpoint {
	return func(t *testing.T, m *meter) string {
		t.Helper()
		s := httptest.NewUnstartedServer(http.HandlerFunc(noContent))
		s.Listener.Close()
		s.Listener, s.TLS = m, c
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // it would tell of every handshake that we refuse
		s.StartTLS()
		t.Cleanup(s.Close)
		_, port, err := net.SplitHostPort(m.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return "https://" + net.JoinHostPort(host, port)
	}
}

func noContent(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
