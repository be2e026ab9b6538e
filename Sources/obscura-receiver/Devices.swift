internal import ReceiveProtocol

/// Devices that have exchanged a code for a cookie, and the code that the next one may exchange.
struct Devices {
    struct Device {
        /// The cookie's value.
        var secret: [UInt8]
        /// The device's name for itself.
        var id: [UInt8]
    }

    /// `__Host-`: browsers take it only with Secure, for this address alone.
    static let cookieName = "__Host-session"

    private let countMax: Int
    private var devices: [Device] = []
    /// Nil if there is no code, or it was used.
    var token: [UInt8]?

    init(_ limits: ReceiveLimits) { countMax = limits.devices }

    /// The cookie for a device that sends the code in the first line, its own number in the second. Nil for a wrong or
    /// used code, and when there are too many devices.
    mutating func join(_ body: [UInt8]) -> [UInt8]? {
        let lines = body.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        var random = [UInt8](repeating: 0, count: 2 * PacketLimits.secretBytes)
        guard let sent = lines.first.flatMap({ SecretText.secret($0) }), let token,
            isEqualInConstantTime(sent, token), devices.count < countMax, fillRandom(&random)
        else { return nil }
        self.token = nil
        let own = lines.count > 1 ? hexBytes(lines[1], count: PacketLimits.secretBytes) : nil
        let secret = Array(random[..<PacketLimits.secretBytes])
        devices.append(Device(secret: secret, id: own ?? Array(random[PacketLimits.secretBytes...])))
        return secret
    }

    /// The device with this `Cookie` header. All are compared, in constant time.
    func device(withCookie header: String?) -> [UInt8]? {
        guard let header, let value = cookie(Self.cookieName, in: header),
            let secret = SecretText.secret(value)
        else { return nil }
        var found: [UInt8]?
        for device in devices where isEqualInConstantTime(device.secret, secret) { found = device.id }
        return found
    }
}
