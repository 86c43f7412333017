# Asks the address at which clouds hand out credentials, and a name server.
import socket

for kind, address in ((socket.SOCK_STREAM, ("169.254.169.254", 80)), (socket.SOCK_DGRAM, ("8.8.8.8", 53))):
    with socket.socket(socket.AF_INET, kind) as s:
        s.settimeout(2)
        try:
            s.connect(address)
            s.send(b"GET /latest/meta-data/iam/ HTTP/1.0\r\n\r\n")
            print("reached", address, s.recv(100))
        except OSError as error:
            print(address[0], error)
