#!/bin/sh
# Makes the keys and certificates of the tests, for a hundred years. Needs openssl 3.
set -e
cd "$(dirname "$0")"
days=36500
ca() { # name
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days $days \
        -keyout "$1.key" -out "$1.pem" -subj "/CN=$1" 2>/dev/null
}
leaf() { # name, authority, subject, subject alternative names, more options
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.csr" \
        -subj "$3" -utf8 2>/dev/null
    echo "subjectAltName=$4" > "$1.ext"
    name=$1 authority=$2
    shift 4
    openssl x509 -req -in "$name.csr" -CA "$authority.pem" -CAkey "$authority.key" \
        -extfile "$name.ext" -out "$name.crt" "$@" 2>/dev/null
    cat "$name.key" "$name.crt" > "$name.pem"
    rm -f "$name.key" "$name.crt" "$name.csr" "$name.ext"
}
ca ca
ca other-ca
leaf server ca /CN=server DNS:localhost,IP:127.0.0.1,IP:::1 -days $days
leaf renewed ca /CN=renewed DNS:localhost,IP:127.0.0.1 -days $days
leaf elsewhere ca /CN=elsewhere DNS:elsewhere.example -days $days
leaf client ca /O=org/OU=team/CN=alice email:alice@example.org -days $days
leaf stranger other-ca /CN=stranger email:stranger@example.org -days $days
leaf revoked ca /CN=revoked email:revoked@example.org -days $days
openssl pkcs12 -export -in client.pem -certfile ca.pem -passout pass:secret -out client.p12
openssl pkcs12 -export -nokeys -in ca.pem -passout pass:secret -out ca.p12
openssl pkey -in server.pem -aes256 -passout pass:secret -out locked.key
{ cat locked.key; openssl x509 -in server.pem; } > locked.pem
: > index.txt
printf '[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\ndefault_md=sha256\ndefault_crl_days=%s\n' $days \
    > ca.cnf
printf 'policy=p\nserial=serial\nnew_certs_dir=.\n[p]\ncommonName=supplied\n' >> ca.cnf
echo 1001 > serial
echo 'subjectAltName=DNS:localhost,IP:127.0.0.1' > expired.ext
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout expired.key \
    -out expired.csr -subj /CN=expired 2>/dev/null
openssl ca -batch -notext -config ca.cnf -keyfile ca.key -cert ca.pem -in expired.csr \
    -extfile expired.ext -out expired.crt -startdate 20200101000000Z -enddate 20210101000000Z \
    2>/dev/null
cat expired.key expired.crt > expired.pem
openssl ca -config ca.cnf -revoke revoked.pem -keyfile ca.key -cert ca.pem 2>/dev/null
openssl ca -config ca.cnf -gencrl -keyfile ca.key -cert ca.pem -out crl.pem 2>/dev/null
cat ca.pem crl.pem > ca-with-crl.pem
rm -f index.txt* serial* 1001.pem expired.key expired.c?? expired.ext ca.cnf locked.key crl.pem \
    ca.key other-ca.key
