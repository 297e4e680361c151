import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;

/** The settings of topics and brokers that the release in the class path documents, as CSV. */
public class ListSettings {
    public static void main(String[] args) {
        System.out.println("scope,name,type,default,dynamic");
        list("topic", org.apache.kafka.storage.internals.log.LogConfig.configDefCopy());
        list("broker", kafka.server.KafkaConfig.configDef());
    }

    private static void list(String scope, ConfigDef settings) {
        for (ConfigDef.ConfigKey each : new TreeMap<>(settings.configKeys()).values()) {
            if (each.internalConfig) {
                continue;
            }
            boolean isDynamic = scope.equals("topic")
                || kafka.server.DynamicBrokerConfig.AllDynamicConfigs().contains(each.name);
            String type = each.type.toString().toLowerCase();
            System.out.println(String.join(
                ",", scope, each.name, type, value(each.defaultValue), String.valueOf(isDynamic)));
        }
    }

    private static String value(Object value) {
        if (value == null || ConfigDef.NO_DEFAULT_VALUE.equals(value)) {
            return "";
        }
        String text = value.toString();
        if (value instanceof List) {
            text = text.substring(1, text.length() - 1).replace(", ", ",");
        }
        if (value instanceof Class) {
            text = ((Class<?>) value).getName();
        }
        return text.contains(",") ? "\"" + text + "\"" : text;
    }
}
